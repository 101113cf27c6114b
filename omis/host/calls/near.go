package calls

import (
	"strings"

	"mirador/omis"
)

// wrappers has the system calls that functions of the C library with other names make.
var wrappers = map[string]string{
	"send": "sendto", "recv": "recvfrom", "pread": "pread64", "pwrite": "pwrite64", "fstatat": "newfstatat", "fopen": "openat", "opendir": "openat",
	"readdir": "getdents64", "wait": "wait4", "waitpid": "wait4", "sleep": "clock_nanosleep", "usleep": "clock_nanosleep",
	"sigaction": "rt_sigaction", "signal": "rt_sigaction", "sigprocmask": "rt_sigprocmask", "pthread_sigmask": "rt_sigprocmask", "sigwait": "rt_sigtimedwait",
	"sigsuspend": "rt_sigsuspend", "raise": "tgkill", "pthread_kill": "tgkill", "pthread_create": "clone3", "posix_spawn": "clone3", "exec": "execve", "execl": "execve", "execvp": "execve",
	"pthread_mutex_lock": "futex", "pthread_cond_wait": "futex", "pthread_join": "futex", "sem_wait": "futex", "malloc": "brk", "sbrk": "brk", "printf": "write", "fwrite": "write",
	"fread": "read", "pselect": "pselect6", "lseek64": "lseek",
}

// mostNear is how many names an error suggests.
const mostNear = 4

// Unknown returns the error for a name that no system call has. It suggests the call that the function of the C library with this
// name makes, or calls with similar names.
func Unknown(name string) error {
	text := "there is no system call " + name
	name, _ = Split(name)
	if call, ok := wrappers[name]; ok {
		return omis.Errorf(omis.ParameterError, "%s: the C library's %s makes %s", text, name, call)
	}
	var list []string
	for _, known := range Names() {
		if len(list) < mostNear && isNear(name, known) {
			list = append(list, known)
		}
	}
	if len(list) > 0 {
		text += "; did you mean " + strings.Join(list, " or ") + "?"
	}
	return omis.Errorf(omis.ParameterError, "%s", text)
}

// isNear reports whether a name contains the other, or one character is missing, superfluous, different, or two are
// interchanged.
func isNear(a, b string) bool {
	if len(a) > 2 && strings.Contains(b, a) || strings.Contains(a, b) {
		return true
	}
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
