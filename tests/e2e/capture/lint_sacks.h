// SPDX-License-Identifier: BSD-2-Clause
/* Scenes with selective acknowledgements (wire/pumice/sack.h), for lint_gen.c. In each of them, A sends several SENDs,
 * and B reports which of them are missing. */
#ifndef PUMICE_TESTS_E2E_CAPTURE_LINT_SACKS_H
#define PUMICE_TESTS_E2E_CAPTURE_LINT_SACKS_H

#include "tests/e2e/capture/scene.h"

/* The report is right: it names the two SENDs that the capture does not have yet. Its label is "sack". */
void sack_right(struct scene *s);
/* The report names a packet as the newest one that was not sent yet. */
void sack_unsent(struct scene *s);
/* The report says that a SEND has come which the capture does not have. */
void sack_unseen(struct scene *s);
/* The report says that a SEND is missing which B has acknowledged. */
void sack_back(struct scene *s);
/* The report is about QPs of which the capture has no requests. */
void sack_alone(struct scene *s);

#endif
