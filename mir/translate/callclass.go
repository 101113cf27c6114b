package translate

import "strings"

// classes are the classes of system calls that metrics may name, as in SYSCALL_TIME:%network. A
// call may be in several.
var classes = map[string]string{
	"file": `open openat openat2 creat stat lstat newfstatat statx access faccessat faccessat2 chdir rename renameat renameat2
		mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat readlink readlinkat chmod fchmodat chown lchown fchownat
		truncate utime utimes futimesat utimensat mknod mknodat statfs mount umount2 chroot pivot_root getcwd
		setxattr lsetxattr getxattr lgetxattr listxattr llistxattr removexattr lremovexattr execve execveat inotify_add_watch`,
	"desc": `read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek fstat ioctl fcntl flock
		dup dup2 dup3 pipe pipe2 fsync fdatasync sync_file_range ftruncate fallocate fadvise64 getdents getdents64 sendfile splice tee
		vmsplice copy_file_range poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
		eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime inotify_init inotify_init1 memfd_create`,
	"network": `socket socketpair connect accept accept4 bind listen shutdown getsockname getpeername getsockopt setsockopt
		sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg`,
	"memory": `brk mmap munmap mremap mprotect madvise mincore msync mlock mlock2 munlock mlockall munlockall mbind get_mempolicy
		set_mempolicy migrate_pages move_pages process_vm_readv process_vm_writev pkey_mprotect`,
	"process": `clone clone3 fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill ptrace prctl arch_prctl
		setpgid setsid getpid getppid gettid sched_yield sched_setaffinity sched_getaffinity setpriority getpriority prlimit64 pidfd_open pidfd_send_signal`,
	"signal": `rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend sigaltstack
		kill tkill tgkill pause signalfd signalfd4 pidfd_send_signal`,
	"time": `nanosleep clock_nanosleep clock_gettime clock_settime clock_getres gettimeofday settimeofday time alarm getitimer setitimer
		timer_create timer_settime timer_gettime timer_getoverrun timer_delete timerfd_create timerfd_settime timerfd_gettime adjtimex clock_adjtime times`,
	"ipc": `shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend
		mq_timedreceive mq_notify mq_getsetattr futex futex_waitv`,
}

// callsOf returns the system calls that the parameter of a metric names: one call, or with a
// percent sign a class of calls. The node decides whether a single call exists.
func callsOf(parameter string) []string {
	if class, is := strings.CutPrefix(parameter, "%"); is {
		return strings.Fields(classes[class])
	}
	if parameter == "" || strings.Trim(parameter, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return nil
	}
	return []string{parameter}
}
