//go:build linux

package machine

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mirador/omis"
)

// entry is struct utmpx of glibc on x86-64.
type entry struct {
	Type    int16
	_       int16
	PID     int32
	Line    [32]byte
	ID      [4]byte
	User    [32]byte
	Host    [256]byte
	_       [4]byte // exit status
	Session int32
	Time    [2]int32
	Addr    [16]byte
	_       [20]byte
}

const userProcess = 7 // USER_PROCESS

// recent is the time since the last use of the terminal during which who -u regards a
// user as active.
const recent = time.Minute

// logins counts the sessions that login programs recorded; without their file there are
// none.
func (m *Machine) logins() ([]omis.Value, error) {
	b, err := os.ReadFile(m.files.utmp)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var number, active [2]int64 // local, remote
	for _, e := range entries(b) {
		if !alive(e.PID) {
			continue
		}
		from := 0
		if e.remote() {
			from = 1
		}
		number[from]++
		if m.active(e) {
			active[from] = 1
		}
	}
	return []omis.Value{omis.Int(number[0]), omis.Int(active[0]), omis.Int(number[1]), omis.Int(active[1])}, nil
}

// entries returns the entries of users and ignores an incomplete last entry.
func entries(file []byte) (users []entry) {
	for r := bytes.NewReader(file); ; {
		var e entry
		if err := binary.Read(r, binary.LittleEndian, &e); err != nil {
			return users
		}
		if e.Type == userProcess && e.User[0] != 0 {
			users = append(users, e)
		}
	}
}

// remote reports whether the user comes from another host; for local sessions the field
// is empty or names a display.
func (e *entry) remote() bool { return e.Host[0] != 0 && e.Host[0] != ':' }

// alive reports whether a session's process exists; a session that was killed may leave
// its entry.
func alive(pid int32) bool { return pid <= 0 || unix.Kill(int(pid), 0) != unix.ESRCH }

func (m *Machine) active(e entry) bool {
	tty := filepath.Join(m.files.dev, filepath.Clean("/"+unix.ByteSliceToString(e.Line[:])))
	var st unix.Stat_t
	if err := unix.Stat(tty, &st); err != nil {
		return false
	}
	return time.Since(time.Unix(st.Atim.Unix())) < recent
}
