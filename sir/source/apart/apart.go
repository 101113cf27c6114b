// Package apart reads source files in a process of its own, which a monitor or gateway starts for one
// request. Parsers are C code, and sources may be made to harm them: whatever happens to the process, its
// parent gets an error.
//
// The process has limits of memory and time, the rights of an ordinary user if its parent is root, and no file but
// its standard streams: the parent reads the sources. The command line joins both ends. Reader.Read may be
// called from any goroutine; it starts a goroutine that ends before it returns.
package apart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"mirador/sir"
	"mirador/sir/source"
)

// Limits of a process.
const (
	mostMemory  = 3 << 30   // of addresses: the runtime of Go reserves more than it uses
	mostSeconds = 30        // of CPU time
	mostAnswer  = 512 << 20 // bytes of a structure document
	mostAtOnce  = 2         // processes
)

// patience is how long a process may take altogether. Many requests may share the processors.
const patience = 2 * time.Minute

// Reader starts processes that read sources.
type Reader struct {
	argv []string
	free chan struct{}
}

// NewReader returns a Reader whose processes are started by a command, which calls Serve.
func NewReader(argv []string) *Reader { return &Reader{argv, make(chan struct{}, mostAtOnce)} }

// request is what a process reads first, as a line of JSON. The texts of the resources follow.
type request struct {
	Program   string
	Resources []source.Resource
	Sizes     []int
}

// answer is what a process writes first. A structure document follows if there is no error.
type answer struct {
	Refused *source.Error `json:",omitempty"`
}

// Read returns the structure of the program that source files are compiled to, as source.Read does. Of
// an error that is an *source.Error, the resource is the cause.
func (r *Reader) Read(ctx context.Context, program string, resources []source.Resource) (sir.Program, error) {
	select {
	case r.free <- struct{}{}:
		defer func() { <-r.free }()
	case <-ctx.Done():
		return sir.Program{}, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.argv[0], r.argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Dir, cmd.Env = "/", []string{"GOTRACEBACK=none"}
	var out, errs limited
	out.left, errs.left = mostAnswer, 1000
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input(program, resources), &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return sir.Program{}, ctx.Err()
		}
		return sir.Program{}, &source.Error{In: resources[0].In, Msg: fmt.Sprintf(
			"reading it needs more than %d s or %d GB, or the parser failed (%v: %s)", mostSeconds, mostMemory>>30, err, firstLine(errs.String()))}
	}
	line, document, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return sir.Program{}, fmt.Errorf("the process that reads sources wrote %.50q", line)
	}
	if a.Refused != nil {
		return sir.Program{}, a.Refused
	}
	s, err := sir.Decode(bytes.NewReader(document))
	if err != nil || len(s.Programs) != 1 {
		return sir.Program{}, errors.Join(err, errors.New("the process that reads sources wrote no structure"))
	}
	return s.Programs[0], nil
}

func input(program string, resources []source.Resource) io.Reader {
	head := request{Program: program}
	var texts []io.Reader
	for _, r := range resources {
		texts = append(texts, bytes.NewReader(r.Text))
		head.Sizes = append(head.Sizes, len(r.Text))
		r.Text = nil
		head.Resources = append(head.Resources, r)
	}
	line, _ := json.Marshal(head) // strings and numbers only
	return io.MultiReader(bytes.NewReader(append(line, '\n')), io.MultiReader(texts...))
}

// limited is a buffer for a number of bytes. Writing more is an error, which ends the process.
type limited struct {
	bytes.Buffer
	left int
}

var errTooMuch = errors.New("too much output")

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errTooMuch
	}
	return l.Buffer.Write(p)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
