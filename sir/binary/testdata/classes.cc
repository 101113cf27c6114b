// This file has names to demangle, constructors with several symbols at one address, and
// static functions with the same name.
#include <stdexcept>
#include <string>
#include <vector>

namespace shapes {

struct Shape {
	explicit Shape(int n);
	virtual ~Shape();
	virtual int area(int scale) const;
	int n;
};

Shape::Shape(int n) : n(n) {}
Shape::~Shape() {}
__attribute__((noinline)) int Shape::area(int scale) const
{
	if (scale < 0)
		throw std::invalid_argument("scale " + std::to_string(scale));
	return n * scale;
}

template <typename T> __attribute__((noinline)) T sum(const std::vector<T> &v)
{
	T s{};
	for (const T &x : v)
		s += x;
	return s;
}

} // namespace shapes

__attribute__((noinline)) int caught(const shapes::Shape &s, int scale)
{
	try {
		return s.area(scale);
	} catch (const std::invalid_argument &e) {
		return static_cast<int>(std::string(e.what()).size());
	}
}

int twin_a();
int twin_b();

int main(int argc, char **)
{
	shapes::Shape s(argc);
	std::vector<long> v(static_cast<size_t>(argc), 2);
	return caught(s, argc - 2) + static_cast<int>(shapes::sum(v)) + twin_a() + twin_b() > 1000;
}
