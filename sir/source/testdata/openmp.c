/* Directives of OpenMP with one thread. A comment says how often the regions that begin on its line are executed: gcov
   leaves out the functions that gcc makes of directives. */
#include <stdio.h>
static int sum;
__attribute__((noinline)) static int work(int x) { sum += x; return sum & 7; }
__attribute__((noinline)) static void run(int n) {
	int all = 0;
#pragma omp parallel num_threads(1) if(n > 1) reduction(+:all) /* 6 */
	{
		work(n);
#pragma omp for /* 6 */
		for (int i = 0; i < n; i++) {
			{ all += work(i); } /* 15 */
#pragma omp critical /* 15 */
			{
				sum++;
			}
		}
#pragma omp single /* 6 */
		work(1);
#pragma omp master /* 6 */
		{ work(2); }
		if (n > 2) { /* 6 */
			work(9);
#pragma omp barrier /* 3 */
			{ work(10); } /* 3 */
		}
#pragma omp sections /* 6 */
		{
#pragma omp section /* 6 */
			work(3);
#pragma omp section /* 6 */
			{ work(4); { work(11); } }
		}
#pragma omp task /* 6 */
		{
			work(5);
			if (n > 3) /* 6 */
				{ work(7); { work(8); } }
		}
#pragma omp taskwait /* 6 */
#pragma omp atomic /* 6 */
		sum += n;
	}
#pragma omp parallel for num_threads(1) /* 6 */
	for (int i = 0; i < n; i++)
		{ { work(i); } }
	{ /* 6 */
#pragma omp parallel for num_threads(1) /* 6 */
		for (int i = 0; i < n; i++)
			work(i);
	}
	sum += all;
}
int main(void) {
	for (int i = 0; i < 6; i++)
		run(i);
	printf("%d\n", sum);
	return 0;
}
