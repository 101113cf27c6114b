static __attribute__((noinline, used)) int twin() { return 2; }
int twin_b() { return twin(); }
