// twist: a library whose function is compiled in several ways, by FACTOR, and calls itself while it is loaded.
static volatile long seen;

long twist(long x) {
#ifdef PAD
	seen += x;
	seen -= 2 * x;
#endif
	return x * FACTOR + 1;
}

__attribute__((constructor)) static void loaded(void) { seen = twist(1); }
