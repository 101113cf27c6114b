// Branches and loops of C++: members, templates, lambdas, exceptions, objects that are destroyed. The program prints a
// number, and does the same in each run.
#include <stdio.h>

static volatile int input = 7;
static int sum;

__attribute__((noinline)) static int work(int x) { sum += x; return sum & 7; }

struct Guard {
	int &of;
	explicit Guard(int &n) : of(n) { ++of; }
	~Guard() { if (of > 3) --of; else of += 2; }
};

struct Error {
	const char *what;
};

template <class T, int most> struct List {
	T items[most] = {};
	int count = 0;
	void add(T x) {
		if (count == most) throw Error{"full"};
		items[count++] = x;
	}
	T *begin() { return items; }
	T *end() { return items + count; }
	bool empty() const { return count == 0; }
};

enum class Kind { none, some, many, all };

template <class T> struct Ring {
	List<T, 4> list;
	int at = 0;
	void push(T x) {
		try {
			list.add(x);
		} catch (const Error &) {
			list.items[at] = x;
			if (++at == list.count) at = 0;
		}
	}
	T total() {
		T s = T();
		for (const auto &x : list)
			s += x;
		return s;
	}
};

__attribute__((noinline)) static int chosen(Kind k) {
	int r = 0;
	switch (k) {
	case Kind::none:
		return work(1);
	case Kind::some:
		r = work(2);
		[[fallthrough]];
	case Kind::many: {
		Guard g(r);
		r += work(3);
		if (r > 5) break;
		r += 2;
		break;
	}
	default:
		work(4);
	}
	return r;
}

__attribute__((noinline)) static int thrown(int n) {
	int got = 0;
	for (int i = 0; i < n; i++) {
		Guard g(got);
		try {
			if (i % 3 == 1) throw Error{"third"};
			else if (i % 5 == 4) throw i;
			got += work(i);
		} catch (const Error &e) {
			if (e.what[0] == 't') {
				got += 10;
			} else {
				got += 100;
			}
		} catch (int k) {
			if (k > 4) continue;
			got--;
		}
		if (got > 200) return got;
	}
	return got;
}

__attribute__((noinline)) static int words(const char *text) {
	List<int, 20> lengths;
	int length = 0;
	for (; *text; text++) {
		if (*text != ' ' && *text != ',') {
			length++;
			continue;
		}
		if (length > 0)
			lengths.add(length);
		length = 0;
	}
	if (auto *last = lengths.end(); last != lengths.begin() && last[-1] > 1) {
		work(*lengths.begin());
	} else if (lengths.count > 2) {
		work(9);
	}
	int most = 0;
	for (auto it = lengths.begin(); it != lengths.end(); ++it)
		if (*it > most) {
			most = *it;
		}
	auto each = [&](int k) {
		while (k > 0) {
			if (k & 1) sum += most;
			k >>= 1;
		}
		return k;
	};
	for (int i = 0; i < 3; i++) {
		if (each(i) == i || i > 1) work(i);
	}
	return most;
}

struct Shape {
	virtual ~Shape() = default;
	virtual int area() const { return 0; }
};

struct Square : Shape {
	int side;
	explicit Square(int s) : side(s) {}
	int area() const override {
		int a = 0;
		for (int i = 0; i < side; ++i) {
			for (int k = 0; k < side; ++k) {
				if (k == i) { a += 2; } else a++;
			}
		}
		return a;
	}
};

__attribute__((noinline)) static int shapes(int n) {
	List<Shape *, 8> all;
	do {
		if (n % 2) all.add(new Square(n));
		else all.add(new Shape);
	} while (--n > 0);
	int a = 0;
	for (auto s : all) {
		int k = s->area();
		if (k == 0) continue;
		a += k;
	}
	while (!all.empty()) {
		if (all.count == 2 && a > 0) {
			a++;
			break;
		}
		delete all.items[--all.count];
	}
	return a;
}

static inline int clamp(int x, int low, int high) {
	if (x < low) {
		return low;
	} else if (x > high) {
		return high;
	}
	return x;
}

// Their conditions are inlined.
static inline bool starts(unsigned char c) {
	if (c >= 128) return true;
	if (c >= 'a' && c <= 'z') return true;
	return c == ':' || c == '_';
}
static inline bool continues(unsigned char c) { return starts(c) || c == '.' || c == '-'; }

__attribute__((noinline)) static const char *name(const char *p) {
	++p;
	while (*p && continues((unsigned char)*p)) {
		++p;
	}
	return p;
}

// Blocks with objects, exceptions and functions inside.
template <class T> __attribute__((noinline)) static T blocks(T n) {
	int alive = 0;
	{
		auto more = [&](T x) { { alive += work(x); } return x > 2; };
		if (more(n)) { { work(1); } more(1); }
	}
	{
		Guard one(alive);
		if (n > 4) return n;
		Guard other(alive);
	}
	try {
		{
			Guard one(alive);
			if (n > 1) throw Error{"many"};
			work(2);
		}
		work(3);
	} catch (const Error &) {
		{ work(4); }
	}
	while (n-- > 0) {
		{ Guard one(alive); }
	}
	struct Local { static int of(int x) { { return work(x); } } };
	{ alive += Local::of(3); }
	return alive;
}

int main() {
	Ring<int> ring;
	Ring<double> reals;
	for (int i = 0; i < 12; i++) {
		ring.push(i);
		sum += *name("a b-c d" + i % 7);
		if (i % 4 == 0) reals.push(i);
		sum += blocks(i % 6) + (int)blocks((long)i % 5);
		sum += chosen(static_cast<Kind>(i % 4)) + clamp(i, 2, input) + clamp(sum, 5, 50);
	}
	sum += thrown(input) + words("a bc,bc d  bcd a,") + words("x yz ") + shapes(input);
	printf("%d %d %g\n", sum, ring.total(), reals.total());
	return 0;
}
