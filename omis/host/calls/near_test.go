package calls

import (
	"strings"
	"testing"
)

// TestUnknown checks what errors suggest, and that all functions that they name make calls of the table.
func TestUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"send": "send: the C library's send makes sendto", "wirte": "wirte; did you mean write?", "futx": "futx; did you mean futex?", "openat3": "openat or openat2?",
		"epoll": "epoll; did you mean epoll_create or epoll_create1 or epoll_ctl or epoll_ctl_old?", "no_such_call": "no_such_call",
	} {
		if got := Unknown(name).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("of %s: %q, want %q", name, got, want)
		}
	}
	for function, call := range wrappers {
		_, isCall := ByName(function)
		if _, ok := ByName(call); !ok || isCall {
			t.Errorf("%s makes %s", function, call)
		}
	}
}
