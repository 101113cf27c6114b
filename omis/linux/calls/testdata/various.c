/* various makes all kinds of system calls, the same in each run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char big[5000];

int main(int argc, char **argv)
{
	char buf[256];
	(void)argc;
	if (chdir(argv[1]))
		return 1;
	mkdir("folder", 0750);
	mkdir("folder", 0750); /* EEXIST */
	int fd = open("folder/file with \"quotes\"", O_RDWR | O_CREAT | O_TRUNC, 0640);
	write(fd, "hello, world\n\0\1\2", 16);
	memset(big, 'x', sizeof big);
	write(fd, big, sizeof big);
	lseek(fd, 3, SEEK_SET);
	read(fd, buf, 10);
	pread(fd, buf, 200, 5010);
	pwrite(fd, "abc", 3, 100);
	ftruncate(fd, 64);
	fsync(fd);
	close(fd);
	close(-1);  /* EBADF */
	read(77, buf, 10);
	rename("folder/file with \"quotes\"", "folder/b");
	symlink("b", "folder/link");
	readlink("folder/link", buf, sizeof buf);
	link("folder/b", "folder/c");
	chmod("folder/c", 0600);
	access("folder/c", R_OK);
	access("/no/such/place", F_OK);
	unlink("folder/c");
	unlink("folder/b");
	unlink("folder/link");
	getcwd(buf, sizeof buf);
	rmdir("folder");

	int p[2];
	pipe(p);
	write(p[1], "through a pipe", 14);
	read(p[0], buf, sizeof buf);
	dup2(p[0], 40);
	close(40);
	fcntl(p[0], F_GETFD);
	pipe2(p, O_CLOEXEC);
	int s[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	send(s[0], "datagram", 8, 0);
	recv(s[1], buf, 100, 0);
	struct sockaddr_un nowhere = {.sun_family = AF_UNIX, .sun_path = "nowhere"};
	connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&nowhere, sizeof nowhere);
	setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &(int){65536}, 4);
	shutdown(s[0], SHUT_WR);

	getuid();
	getgid();
	umask(022);
	umask(027);
	kill(1 << 22, 0); /* ESRCH */
	open((char *)8, O_RDONLY); /* EFAULT */
	setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0));
	syscall(SYS_sched_yield);
	syscall(SYS_memfd_create, "memory", 0u);
	int gone = fork();
	if (gone == 0)
		_exit(7);
	int status;
	waitpid(gone, &status, 0);
	wait4(-1, &status, WNOHANG, NULL); /* ECHILD */
	return 0;
}
