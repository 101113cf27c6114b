package org.example;
import java.util.*;
public class Shop<T> extends B implements C {
  static int x = f(() -> 3);
  static { init(); }
  Shop(int n, List<String> l) { super(n); for (String s : list(l)) System.out.println(s); }
  @Override public <K> int run(int[] a, K... k) throws E {
    for (int i = 0, j = start(); i < a.length; i++, step()) { if (a[i] > 3) continue; synchronized (this) { x++; } }
    try (R r = open()) { lock.lock(); } catch (IOException | E e) { throw new X(e); } finally { lock.unlock(); }
    switch (x) { case 1: case 2: return 3; default: x = 4; }
    int y = switch (x) { case 1 -> 5; default -> { yield 6; } };
    do { x--; } while (x > 0);
    new Thread(new Runnable() { public void run() { while (true) work(); } }).start();
    return this.x(y).z();
  }
  enum Colour { RED { void m() { f(); } }, BLUE; abstract void m(); }
  interface I { default void d() { e(); } void abs(); }
  record P(int a) { P { check(a); } }
}
