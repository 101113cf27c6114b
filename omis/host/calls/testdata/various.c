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
#include <sys/ioctl.h>
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
	signal(SIGPIPE, SIG_IGN);
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

	struct iovec parts[2] = {{"in ", 3}, {"parts", 5}};
	writev(s[0], parts, 2); /* EPIPE */
	writev(p[1], parts, 2);
	struct iovec rooms[2] = {{buf, 4}, {buf + 10, 20}};
	readv(p[0], rooms, 2);
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
	sendmsg(s[1], &message, MSG_NOSIGNAL);
	recvmsg(s[0], &message, MSG_DONTWAIT | MSG_PEEK);
	int word = 7;
	syscall(SYS_futex, &word, 1 /* FUTEX_WAKE */, 3, 0, 0, 0);
	syscall(SYS_futex, &word, 0 /* FUTEX_WAIT */, 8, 0, 0, 0); /* EAGAIN */
	ioctl(p[0], 0x541b /* FIONREAD */, &word);
	ioctl(-1, 0x5401, &word); /* EBADF */
	char *words[] = {"no such program", "-x", "", "last", NULL}, *names[] = {"A=1", "B=two words", NULL};
	execve("/no/such/program", words, names);
	struct timespec moment = {0, 1000};
	nanosleep(&moment, NULL);

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
