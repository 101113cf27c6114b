/* forker creates child processes for tests: each child either continues the same
 * program (fork) or executes another one (exec), and exits.
 *
 *	usage: forker [CHILDREN [USEC]]     3 children, sleep USEC before each
 *
 * It starts at SIGUSR2, and prints two lines for every child:
 *	child NUMBER PID fork               or exec
 *	ended NUMBER STATUS
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* child is what a forked child runs: its exit status is its number. */
__attribute__((noinline)) int child(int number)
{
	return number & 127;
}

static void become(const char *program, int number)
{
	char status[16];
	snprintf(status, sizeof status, "%d", number);
	execl(program, program, "--child", status, (char *)NULL);
	perror(program);
	_exit(127);
}

__attribute__((noinline)) void spawn(const char *program, int number)
{
	int execs = number % 2;
	pid_t pid = fork();
	if (pid < 0) {
		perror("forker: cannot fork");
		exit(1);
	}
	if (pid == 0) {
		if (execs)
			become(program, number);
		_exit(child(number));
	}
	printf("child %d %d %s\n", number, pid, execs ? "exec" : "fork");
	int status = 0;
	waitpid(pid, &status, 0);
	printf("ended %d %d\n", number, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc > 2 && argv[1][0] == '-')
		return child(atoi(argv[2]));
	int children = argc > 1 ? atoi(argv[1]) : 3;
	int rest = argc > 2 ? atoi(argv[2]) : 0;

	sigset_t begin;
	int sig;
	sigemptyset(&begin);
	sigaddset(&begin, SIGUSR2);
	sigprocmask(SIG_BLOCK, &begin, NULL);
	printf("ready %d\n", getpid());
	fflush(stdout);
	sigwait(&begin, &sig);
	sigprocmask(SIG_UNBLOCK, &begin, NULL);

	for (int i = 1; i <= children; i++) {
		usleep((useconds_t)rest);
		spawn("/proc/self/exe", i);
	}
	return 0;
}
