/* Functions of many shapes, each called once with values that the test knows. */
#include <stdarg.h>

struct point { double x, y; };
struct mixed { long n; double d; };
struct small { char c; short s; };
struct large { long n[5]; };
struct bits { unsigned a : 3, b : 29; unsigned c : 32; float f; };
enum colour { RED = -1, GREEN = 7 };

int integers(char a, unsigned char b, short c, unsigned d, long e, unsigned long f, int g, signed char h, _Bool i);
double floats(float a, double b, int c, double d, double e, double f, double g, double h, double i, double j, float k);
long double extended(int a, long double b, long c);
const char *strings(const char *a, char *b, const unsigned char *none);
struct point points(struct point a, struct mixed b, struct small c, struct large d, enum colour e);
struct large makes(int n);
struct mixed mixes(struct bits b, long last);
void nothing(void *p, int *q, int (*f)(int));
int various(const char *format, ...);
int outer(int n);
int inner(int n);
__int128 wide(__int128 a, int b);
float _Complex complicated(float _Complex a, double _Complex b);
int versioned(int n);
int chosen(int n);
int plain(int fd, void *buf, unsigned long n);
