//go:build linux

package proc

import (
	"os"
	"testing"
)

func TestAddressSpace(t *testing.T) {
	const head = "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         8388608              8388608              bytes     \n"
	for rest, want := range map[string]uint64{
		"Max address space         unlimited            unlimited            bytes     \n":               Unlimited,
		"Max address space         4294967296           unlimited            bytes     \nMax file locks": 1 << 32,
		"Max address space         0                    1                    bytes     \n":               0,
	} {
		if got, err := parseAddressSpace([]byte(head + rest)); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", rest, got, err, want)
		}
	}
	for _, text := range []string{"", head, "Max address space", "Max address space  x y"} {
		if got, err := parseAddressSpace([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	if _, err := AddressSpace(os.Getpid()); err != nil {
		t.Error(err)
	}
}
