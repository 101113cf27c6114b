#include "shapes.h"
#include <complex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static char there[] = "there";
static volatile int eleven = 11;

__attribute__((noipa)) int own(int n) { return n + eleven; }

int main(void)
{
	char buf[16] = "";
	int q = 99;
	memcpy(buf, there, (size_t)eleven / 2); /* binds the symbol */
	raise(SIGUSR1);

	integers('a', 200, -3, 4000000000u, -5L, 18000000000000000000ul, -7, -8, 1);
	floats(0.5f, 1.5, 3, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5f);
	extended(2, 1.25L, 3);
	strings("here", there, NULL);
	points((struct point){1, 2}, (struct mixed){3, 4}, (struct small){'c', 6}, (struct large){{1, 2, 3, 4, 5}}, RED);
	makes(40);
	mixes((struct bits){1, 2, 3, 2.5f}, 7);
	nothing(NULL, &q, own);
	various("%d %s", 5, "x");
	outer(20);
	inner(30);
	wide(((__int128)1 << 64) + 5, 6);
	complicated(1.0f + 2.0f * I, 3.0 + 4.0 * I);
	versioned(5);
	chosen(6);
	plain(4, buf, 4);
	own(3);
	return 0;
}
