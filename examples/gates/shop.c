/* A small program to gate: it adds up the prices of 20000 items. */
#include <stdio.h>

__attribute__((noinline)) unsigned price(int item)
{
	char key[32];
	unsigned p = 0;
	snprintf(key, sizeof key, "item-%d", item);
	for (char *c = key; *c; c++)
		p = p * 31 + *c;
	return p % 1000;
}

int main(void)
{
	unsigned sum = 0;
	for (int i = 0; i < 20000; i++)
		sum += price(i);
	return printf("%u\n", sum) < 0;
}
