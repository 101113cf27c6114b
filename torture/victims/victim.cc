// A C++ program that has the same result in every round. Four threads throw exceptions
// through many frames, jump out of functions, sort and recur. Functions named counted_
// count their calls.
#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define COUNTED(name) \
	static std::atomic<long> name##_calls; \
	extern "C" __attribute__((noinline, noclone, used))

struct Leaf : std::runtime_error {
	uint64_t value;
	Leaf(uint64_t v) : std::runtime_error("leaf"), value(v) {}
};

COUNTED(counted_mix) uint64_t counted_mix(uint64_t x) {
	counted_mix_calls.fetch_add(1, std::memory_order_relaxed);
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	return x ^ x >> 29;
}

// Throws every third time, through frames that clean up.
COUNTED(counted_fall) uint64_t counted_fall(int depth, uint64_t x) {
	counted_fall_calls.fetch_add(1, std::memory_order_relaxed);
	auto held = std::make_unique<std::string>("held at " + std::to_string(depth));
	if (depth == 0) {
		if (x % 3 == 0)
			throw Leaf(counted_mix(x));
		return x;
	}
	uint64_t below = counted_fall(depth - 1, x + depth);
	return below + held->size();
}

// Called through a variable, because the compiler would replace half of the calls by a loop.
static uint64_t (*volatile walk)(int);

COUNTED(counted_walk) uint64_t counted_walk(int n) {
	counted_walk_calls.fetch_add(1, std::memory_order_relaxed);
	return n < 2 ? n : walk(n - 1) + 3 * walk(n - 2);
}

// Is left by longjmp every other time.
COUNTED(counted_leap) int counted_leap(jmp_buf &back, int n) {
	counted_leap_calls.fetch_add(1, std::memory_order_relaxed);
	if (n % 2)
		longjmp(back, n);
	return n;
}

// Has variable arguments; a register contains the number of floating-point arguments.
COUNTED(counted_list) double counted_list(int n, ...) {
	counted_list_calls.fetch_add(1, std::memory_order_relaxed);
	__builtin_va_list list;
	__builtin_va_start(list, n);
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += __builtin_va_arg(list, double);
	__builtin_va_end(list);
	return sum;
}

static int leaps(int n) {
	jmp_buf back;
	volatile int sum = 0;
	int from = setjmp(back);
	if (from)
		return sum + from;
	sum = 5;
	return sum * counted_leap(back, n);
}

static uint64_t work(int id) {
	uint64_t x = 7919 * (id + 1);
	for (int i = 0; i < 60; i++) {
		try {
			x = counted_mix(x + counted_fall(6, x % 1000 + i));
		} catch (const Leaf &leaf) {
			x ^= leaf.value + std::string(leaf.what()).size();
		}
		x += leaps(i % 9);
	}
	x += counted_walk(11) + uint64_t(counted_list(3, 1.5, 2.25, double(id)));
	std::map<std::string, uint64_t> names;
	std::vector<uint64_t> list;
	for (int i = 0; i < 150; i++) {
		list.push_back(x = counted_mix(x + i));
		std::ostringstream name;
		name << "n" << x % 40;
		names[name.str()] += x;
	}
	std::sort(list.begin(), list.end(), std::greater<uint64_t>());
	for (auto &[name, value] : names)
		x = counted_mix(x ^ value ^ std::hash<char>()(name.back()));
	return x ^ list[17];
}

int main() {
	walk = counted_walk;
	for (int c; (c = getchar()) != EOF;) {
		if (c != '\n')
			continue;
		uint64_t results[4], all = 0;
		std::vector<std::thread> threads;
		for (int i = 0; i < 4; i++)
			threads.emplace_back([&results, i] { results[i] = work(i); });
		for (auto &t : threads)
			t.join();
		for (uint64_t r : results)
			all = all * 31 + r;
		printf("%016llx", (unsigned long long)all);
#define SAY(name) printf(" " #name "=%ld", name##_calls.exchange(0))
		SAY(counted_mix);
		SAY(counted_fall);
		SAY(counted_walk);
		SAY(counted_leap);
		SAY(counted_list);
		puts("");
		fflush(stdout);
	}
}
