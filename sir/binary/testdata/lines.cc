// Lines of many kinds, which a test counts and compares with gcov.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T> T doubled(T v)
{
	return v + v;
}

struct Guard {
	int &n;
	explicit Guard(int &n) : n(n) { n++; }
	~Guard() { n--; }
};

static inline int clamp(int v, int low, int high)
{
	if (v < low)
		return low;
	if (v > high)
		return high;
	return v;
}

static int checked(int v)
{
	if (v % 7 == 3)
		throw std::invalid_argument("seven");
	return v;
}

static int tries(int n)
{
	int caught = 0, open = 0;
	for (int i = 0; i < n; i++) {
		Guard g(open);
		try {
			if (i % 5 == 4)
				continue;
			caught += checked(i) * 0;
			open += 0;
		} catch (const std::invalid_argument &e) {
			caught += e.what()[0] == 's';
		}
	}
	return caught + open;
}

static int words(const std::string &text)
{
	int found = 0;
	for (char c : text)
		found += c == ' ';
	auto longest = [&](int by) {
		return found + by;
	};
	while (found > 40) found -= 7;
	return longest(found) + (found > 2 ? clamp(found, 1, 9)
					   : clamp(found, 0, 3));
}

int main()
{
	std::vector<int> list;
	for (int i = 0; i < 23; i++)
		list.push_back(clamp(i - 3, 0, 11));
	int sum = tries(31) + words("a few words in a row") + words("");
	for (int v : list) {
		sum += doubled(v);
		if (v == 11)
			break;
	}
	sum += static_cast<int>(doubled(2.5)) + words(std::string(60, ' '));
	switch (sum % 3) {
	case 0:
		sum++;
		break;
	default:
		sum += 2;
	}
	std::printf("%d\n", sum);
	return 0;
}
