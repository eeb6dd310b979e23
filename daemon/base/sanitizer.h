// SPDX-License-Identifier: BSD-2-Clause
/* Is this a build with a sanitizer? Its run-time library needs more than the daemon does. The sanitizers that know the
 * stacks of threads do not let a thread take over the stack of another. */
#ifndef PUMICE_DAEMON_BASE_SANITIZER_H
#define PUMICE_DAEMON_BASE_SANITIZER_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
