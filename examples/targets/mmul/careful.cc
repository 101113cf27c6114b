// The C++ part of mmul: a function that throws, one that catches the exception,
// and one without exceptions.
#include "lib/mmul.h"

#include <stdexcept>
#include <string>

namespace mmul {

// risky throws in every third round. Its frame has an object with a destructor,
// so unwinding runs code in this frame.
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
