// filtered: the kernel kills it for system calls that it does not make itself. It calls work 100 times.
// Told "strict", it lets itself read and write only.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) uint64_t work(uint64_t x) {
	for (int i = 0; i < 8; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	__asm__ volatile("");
	return x;
}

static void say(const char *format, uint64_t x) {
	char line[64];
	int n = snprintf(line, sizeof line, format, x);
	if (write(1, line, n) != n)
		_exit(2);
}

static int get(void) {
	char c;
	return read(0, &c, 1) == 1 ? c : EOF;
}

int main(int argc, char **argv) {
	int strict = argc > 1 && !strcmp(argv[1], "strict");
	struct sock_filter kill[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof kill / sizeof *kill, kill};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 1;
	if (strict ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	say("ready 0x%lx\n", (uint64_t)work);
	get();
	uint64_t sum = 0;
	for (int i = 0; i < 100; i++)
		sum += work(sum + i);
	say("sum %lx\n", sum);
	while (get() != EOF)
		;
	syscall(SYS_exit, 0);
}
