//go:build linux

package registrar

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Uprobes are those of one link.
type Uprobes struct {
	Program *ebpf.Program
	PID     int
	Path    string // of the file, as the monitor opens it
	Offsets []uint64
	Cookies []uint64 // for each offset, or none
}

func (u *Uprobes) set() (link.Link, error) {
	file, err := link.OpenExecutable(u.Path)
	if err != nil {
		return nil, err
	}
	return file.UprobeMulti(nil, u.Program, &link.UprobeMultiOptions{PID: uint32(u.PID), Addresses: u.Offsets, Cookies: u.Cookies})
}

// descriptorOf is the descriptor of a link, which stays the link's.
func descriptorOf(l link.Link) (int, error) {
	if has, ok := l.(interface{ FD() int }); ok {
		return has.FD(), nil
	}
	return -1, fmt.Errorf("a link (%T) has no descriptor", l)
}

// isOfUprobes tells whether a link is of uprobes: no other is dangerous to let go of.
func isOfUprobes(l link.Link) bool {
	info, err := l.Info()
	return err == nil && info.Type == link.UprobeMultiType
}

// errNoDescriptor is the answer to a message that came without the descriptor it speaks
// of: the process has as many open files as it may.
var errNoDescriptor = errors.New("no descriptor came with the message (there may be too many open files)")
