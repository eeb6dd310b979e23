// SPDX-License-Identifier: BSD-2-Clause
/* The attacks of a hostile member. Each makes one kind of effort until effort_goes_on returns false. Refused requests and
 * failed objects are no errors: the member takes what it gets. */
#ifndef PUMICE_TESTS_SOAK_HOSTILE_ATTACKS_H
#define PUMICE_TESTS_SOAK_HOSTILE_ATTACKS_H

/* --- control.c: requests on control sockets --- */
void attack_objects(void); /* makes objects of all kinds up to the quotas, and destroys them */
void attack_status(void); /* asks for STATUS, TM and LAYOUT on many connections, with many objects to report */
void attack_halfopen(void); /* connections that ask for nothing, or for half a thing, or read no answer */
void attack_descriptors(void); /* sends descriptors of all kinds */

/* --- rings.c: shared memory --- */
void attack_garbage(void); /* anything in the rings and pages of queues */
void attack_doorbells(void); /* rings thousands of doorbells without work */

/* --- traffic.c: work requests --- */
void attack_bulk(void); /* many QPs that WRITE within a device */
void attack_across(void); /* the same from one device to another */
void attack_small(void); /* many QPs that send small messages */
void attack_tags(void); /* list operations, unexpected messages, rendezvous */
void attack_memory(void); /* regions come and go; pages go while the daemon writes them */
void attack_deaths(void); /* processes that die in the middle of all that, and come again */

#endif
