/* A library that opens.c opens. */
extern int calls;
static int filler[SIZE] = {1};

__attribute__((noinline, noclone)) int work(int n) {
	calls++;
	for (int i = 0; i < n % 7; i++)
		n += filler[i % SIZE];
	return n;
}

__attribute__((constructor)) static void begins(void) { work(3); }
