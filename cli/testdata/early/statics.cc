// A program whose static objects have constructors. In the end it reports the calls of its own
// function, and of the library's.
#include <cstdio>

extern "C" {
extern long library_calls;
void library_work(void);
}

static long calls;

extern "C" __attribute__((noipa)) void work(void) { calls++; }

struct Eager {
	explicit Eager(int times) {
		for (int i = 0; i < times; i++)
			work();
	}
};

static Eager first(500), second(5);

int main() {
	work();
	library_work();
	std::printf("%ld %ld\n", calls, library_calls);
}
