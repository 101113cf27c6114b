/* covered maps a file, mounts another one over its path in a mount namespace of its own, and waits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY);
	char c;
	if (fd < 0 || mmap(NULL, 1 << 14, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	close(fd);
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount(argv[2], argv[1], NULL, MS_BIND, NULL)) {
		perror(argv[2]);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	return read(0, &c, 1) < 0;
}
