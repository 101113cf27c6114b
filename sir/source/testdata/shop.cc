#include <vector>
namespace shop { namespace {
template <class T> class Cart {
public:
  explicit Cart(int n) : items(make(n)) {}
  ~Cart() { delete p; }
  int total() const { int s = 0; for (auto &i : items) s += i; return s; }
  bool operator==(const Cart &o) const { return total() == o.total(); }
  operator int() const { return 3; }
private:
  std::vector<T> items; int *p;
};
}
int Store::sell(int n) {
  auto f = [&](int k) { while (k-- > 0) log(k); return k; };
  try { f(n); if (n > 3) throw n; else if (n > 2) { p = new int[n]; } else return 0; }
  catch (int e) { printf("%d", e); }
  catch (...) { obj->method(1).other<int>(2); }
#pragma omp parallel
  {
#pragma omp for schedule(static)
  for (int i = 0; i < n; i++) MPI_Send(b, n);
#pragma omp barrier
  }
  return 1;
}
}
extern "C" int plain(int n) { switch (n) { case 1: return 2; default: break; } return n; }
int main() { return plain(2); }
