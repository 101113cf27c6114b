// The C++ part of mmul: a function that throws through its frame, the one that
// catches it, and one in which nothing is thrown.
#include "lib/mmul.h"

#include <stdexcept>
#include <string>

namespace mmul {

// risky throws in every third round. Its frame holds an object to destroy, so
// unwinding has to stop here on its way.
__attribute__((noinline)) int risky(int round)
{
	counts.risky++;
	std::string what = "round " + std::to_string(round) + " is a multiple of three";
	if (round % 3 == 0)
		throw std::runtime_error(what);
	return static_cast<int>(what.size());
}

} // namespace mmul

extern "C" __attribute__((noinline)) int careful(int round)
{
	counts.careful++;
	try {
		return mmul::risky(round) < 0;
	} catch (const std::runtime_error &) {
		counts.thrown++;
		return 1;
	}
}

extern "C" __attribute__((noinline)) int calm(int round)
{
	counts.calm++;
	return static_cast<int>(std::to_string(round).size());
}
