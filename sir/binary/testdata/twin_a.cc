static __attribute__((noinline, used)) int twin() { return 1; }
int twin_a() { return twin(); }
