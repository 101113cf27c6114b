// A library whose constructor calls a function that the library exports.
long library_calls;

__attribute__((noipa)) void library_work(void) { library_calls++; }

__attribute__((constructor)) static void begin(void) {
	for (int i = 0; i < 1000; i++)
		library_work();
}
