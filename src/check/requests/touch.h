// SPDX-License-Identifier: BSD-2-Clause
/* The program touches memory that an outstanding request may fill (RULE_TOUCH). */
#ifndef PUMICE_SRC_CHECK_REQUESTS_TOUCH_H
#define PUMICE_SRC_CHECK_REQUESTS_TOUCH_H

/* Begins to look, if the rule is on. */
void touch_start(void);
/* This process is a new child. */
void touch_forked(void);

#endif
