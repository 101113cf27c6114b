package apart

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"mirador/sir"
	"mirador/sir/source"
)

// Serve reads a request, gives up the rights of the process before it reads texts, and writes the answer.
func Serve(in io.Reader, out io.Writer) error {
	buffered := bufio.NewReader(in)
	line, err := buffered.ReadBytes('\n')
	if err != nil {
		return err
	}
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	if err := confine(r.Limits); err != nil {
		return err
	}
	if len(r.Sizes) != len(r.Resources) {
		return errors.New("the request has another number of texts than of resources")
	}
	for i, size := range r.Sizes {
		if size < 0 || size > source.MostTotal {
			return fmt.Errorf("a text of %d bytes", size)
		}
		r.Resources[i].Text = make([]byte, size)
		if _, err := io.ReadFull(buffered, r.Resources[i].Text); err != nil {
			return err
		}
	}
	return respond(out, &r)
}

func respond(out io.Writer, r *request) error {
	var mu sync.Mutex
	var a answer
	tell := func(a answer) error {
		line, _ := json.Marshal(a) // strings and numbers only
		_, err := out.Write(append(line, '\n'))
		return err
	}
	program, err := source.ReadWatched(context.Background(), r.Program, r.Resources, func(number int, begins bool) {
		mu.Lock()
		defer mu.Unlock()
		_ = tell(answer{Number: number, Begins: begins}) // a parent that has ended needs no structure
	})
	if err != nil && !errors.As(err, &a.Refused) {
		return err
	}
	a.Whole = err == nil
	if err := tell(a); err != nil || !a.Whole {
		return err
	}
	return sir.Encode(out, &sir.Structure{Programs: []sir.Program{program}})
}

// nobody is the user without rights of its own.
const nobody = 65534

// reserved is more than the addresses that the runtime of Go reserves and does not use.
const reserved = 2 << 30

// confine limits the process for good. It opens no files from then on.
func confine(l Limits) error {
	debug.SetMemoryLimit(l.Memory / 2)
	for resource, most := range map[int]uint64{
		unix.RLIMIT_DATA: uint64(l.Memory), unix.RLIMIT_AS: uint64(l.Memory + reserved), unix.RLIMIT_CPU: uint64(l.CPU.Seconds()), unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: 16,
	} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("cannot limit the process: %w", err)
		}
	}
	if os.Geteuid() == 0 {
		err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
		if err != nil {
			return fmt.Errorf("cannot give up the rights of root: %w", err)
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
