/* Reports of mmul about its own calls. */
#ifndef REPORT_H
#define REPORT_H

#include "work.h"

/* report prints the calls that each thread has counted, the sums, and whether all
 * products were right, to standard output and to the file path (NULL: none),
 * which it replaces atomically. Its lines:
 *
 *	report NUMBER STATE           STATE: waiting, working or done
 *	count THREAD TID FUNCTION N
 *	total FUNCTION N
 *	checksum HEX ok               or WRONG
 *	end
 */
void report(const char *path, const char *state, const struct worker *workers, int n);

#endif
