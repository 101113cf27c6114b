package org.example.ways_1;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntUnaryOperator;

/**
 * Leaves its regions in all ways of Java. Tests weave all regions that can be woven: a loop, a choice and a block
 * follow a statement that is executed as often, and what is in braces begins with one.
 */
public class Ways {
    private final int start;
    private static int total;

    Ways(int start) {
        this(start, "a \" { text");
        total++;
    }

    private Ways(int start, String text) {
        super();
        this.start = start + text.length();
    }

    static int early(int n) {
        total++;
        if (n < 2)
            return n;
        return early(n - 1) + 1;
    }

    int search(int[] list, int wanted) {
        total++;
        for (int i = 0; i < list.length; i++) {
            total++;
            if (list[i] == wanted)
                return i; // a "return" { in a loop
            total++;
            if (list[i] < 0) {
                total--;
                throw new IllegalStateException("negative");
            } else if (list[i] > 100) {
                total--;
                continue;
            } else
                total += 2;
        }
        return -1;
    }

    static String text(int kind) {
        String found = """
            { a "text" block
            """;
        total++;
        switch (kind & 3) {
            case 0:
                found = "zero";
                break;
            case 1: {
                found = "one";
                break;
            }
            default:
                total += kind;
        }
        return found + switch (kind) {
            case 1 -> "x";
            default -> {
                total++;
                yield "y";
            }
        };
    }

    @FunctionalInterface
    interface Work {
        void run() throws Exception;
        default int twice(int n) {
            return 2 * n;
        }
    }

    static int guarded(Work w) {
        int state = 0;
        try {
            w.run();
            state = 1;
        } catch (IllegalStateException | java.io.IOException e) {
            state = 2;
        } catch (Exception e) {
            return 3;
        } finally {
            total += 5;
        }
        return state;
    }

    public static void main(String[] args) throws Exception {
        Ways w = new Ways(3);
        List<Integer> found = new ArrayList<>();
        int[] list = {4, 8, 15, 16, 400, -23, 42};
        total++;
        outer: for (int i = 0; i < 5; i++) {
            total++;
            for (int n : list) {
                total++;
                if (n == 16)
                    continue outer;
                total++;
                if (i == 3 && n == 8)
                    break outer;
                found.add(n);
            }
        }
        final int fixed;
        total++;
        if (found.size() > 3)
            fixed = 1;
        else
            fixed = 2;
        IntUnaryOperator add = n -> n + fixed;
        Work search = () -> {
            total++;
            total += w.search(list, 42);
        };
        found.add(guarded(search));
        found.add(guarded(() -> {
            w.search(list, 16);
        }));
        found.add(guarded(() -> {
            throw new Exception();
        }));
        int k = 0;
        do {
            k++;
            if (k % 3 == 0)
                continue;
            total++;
            synchronized (w) {
                total += add.applyAsInt(k);
            }
        } while (k < 10);
        Object o = text(k);
        if (o instanceof String s && s.length() > 1)
            total += s.length();
        total++;
        while (true) {
            total++;
            if (early(k) > 5)
                break;
        }
        System.out.println(found + text(1) + w.start + search.twice(total));
        total++;
        if (total > 0)
            System.exit(0);
        System.out.println("not reached");
    }
}
