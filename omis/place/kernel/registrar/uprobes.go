//go:build linux

package registrar

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Uprobes describes the uprobes of one link.
type Uprobes struct {
	Program *ebpf.Program
	PID     int
	Path    string // a path by which the monitor can open the file
	Offsets []uint64
	Cookies []uint64 // one for each offset, or none
}

func (u *Uprobes) set() (link.Link, error) {
	file, err := link.OpenExecutable(u.Path)
	if err != nil {
		return nil, err
	}
	return file.UprobeMulti(nil, u.Program, &link.UprobeMultiOptions{PID: uint32(u.PID), Addresses: u.Offsets, Cookies: u.Cookies})
}

// descriptorOf returns the descriptor of a link, which the link still owns.
func descriptorOf(l link.Link) (int, error) {
	if has, ok := l.(interface{ FD() int }); ok {
		return has.FD(), nil
	}
	return -1, fmt.Errorf("a link (%T) has no descriptor", l)
}

// isOfUprobes reports whether a link is of uprobes. A SIGKILL while such a link is closed can leave
// uprobes.
func isOfUprobes(l link.Link) bool {
	info, err := l.Info()
	return err == nil && info.Type == link.UprobeMultiType
}

// errNoDescriptor is the answer to a request without its descriptor: the process has as many open files as
// it may have.
var errNoDescriptor = errors.New("no descriptor came with the message (there may be too many open files)")
