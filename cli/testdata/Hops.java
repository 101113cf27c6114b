import java.util.Scanner;

/** Calls a method for each line that it reads, and answers with the number of calls so far. */
class Hops {
    static int calls, odd; // calls after the first one

    static void hop(int n) {
        if (n % 2 == 0)
            return;
        odd++;
    }

    public static void main(String[] args) {
        hop(calls);
        System.out.println("ready");
        for (Scanner in = new Scanner(System.in); in.hasNextLine(); in.nextLine()) {
            for (int i = 0; i < 1000; i++)
                hop(calls++);
            System.out.println(calls);
        }
    }
}
