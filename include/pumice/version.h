// SPDX-License-Identifier: BSD-2-Clause
/* The version of all parts of Pumice; they are built and installed together. */
#ifndef PUMICE_VERSION_H
#define PUMICE_VERSION_H

#define PUMICE_VERSION "0.1.0"

#endif
