/* Compiled without debug information. */
#include "shapes.h"
#include <string.h>

int plain(int fd, void *buf, unsigned long n)
{
	memset(buf, 'z', n - 1);
	return fd == 4 ? (int)n - 1 : -1;
}
