// What only a C++ program does: exceptions that leave functions which are measured.

extern "C" {

__attribute__((noinline, noclone)) int throwing(int n) {
	if (n == 0)
		throw 42;
	int r = throwing(n - 1);
	__asm__ volatile("" ::: "memory");
	return r + 1;
}

__attribute__((noinline, noclone)) int caught(int n) {
	try {
		return throwing(n);
	} catch (int v) {
		return v;
	}
}
}
