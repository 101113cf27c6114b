/* ways leaves its regions in all ways of C++; see ways.c. */
#include <cstdio>

static int total;

struct Error {
	explicit Error(int n)
		: code(n)
	{
		total++;
	}
	virtual ~Error() = default;
	int code;
};

struct Guard {
	explicit Guard(int n)
		: kept{n}, name{'}'}
	{
		total += kept;
	}
	~Guard()
	{
		total += 2;
	}
	int kept;
	char name;
};

template <typename T>
static T checked(T n)
{
	total++;
	if (n % 3 == 1)
		throw Error(4);
	total++;
	if (n % 3 == 2)
		throw 2;
	return n;
}

static int guarded(int n)
{
	const int list[] = {1, 2, 3};
	Guard g(n);
	total++;
	for (int k : list)
		total += checked(n + k * 3);
	return g.kept;
}

class Counter {
public:
	int add(int n)
	{
		total += n;
		auto twice = [this](int m) {
			count += 2 * m;
			return count;
		};
		return twice(n);
	}
private:
	int count = 0;
};

int main()
{
	Counter c;
	total = 1;
	for (int i = 0; i < 12; i++) {
		total++;
		try {
			total++;
			if (i > 8) {
				total += static_cast<int>(checked(static_cast<long>(i)));
				continue;
			}
			guarded(i);
		} catch (const Error &e) {
			total += e.code;
		} catch (int n) {
			total += n;
			if (i == 5)
				break;
		}
		total += c.add(i);
	}
	int n = 3;
	total++;
	while (n) {
		total += n--;
	}
	std::printf("%d\n", total);
	return 0;
}
