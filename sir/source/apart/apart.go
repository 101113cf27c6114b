// Package apart reads source files in a process of its own, which a monitor or gateway starts for one
// request. Parsers are C code, and sources may be made to harm them: whatever happens to the process, its
// parent gets an error.
//
// The process has limits of memory and time, the rights of an ordinary user if its parent is root, and no file but
// its standard streams: the parent reads the sources. The command line joins both ends. Reader.Read may be
// called from any goroutine; it starts a goroutine that ends before it returns.
package apart

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"mirador/sir"
	"mirador/sir/source"
)

// Limits of a process.
type Limits struct {
	Memory int64         // bytes that may be written
	CPU    time.Duration // in whole seconds
	Answer int64         // bytes of the structure document
	// Time is how long a process may take altogether. Many requests may share the processors.
	Time time.Duration
}

// DefaultLimits are those of a gateway. The document is twice as long as that of a structure with as many regions as a
// program may have, unless their ids are made to be long.
func DefaultLimits() Limits {
	return Limits{Memory: 3 << 29, CPU: 30 * time.Second, Answer: 128 << 20, Time: 2 * time.Minute}
}

// mostAtOnce is the number of processes of a Reader.
const mostAtOnce = 2

// Reader starts processes that read sources.
type Reader struct {
	argv   []string
	limits Limits
	free   chan struct{}
}

// NewReader returns a Reader whose processes are started by a command, which calls Serve. No limits are the default ones.
func NewReader(argv []string, limits Limits) *Reader {
	if limits == (Limits{}) {
		limits = DefaultLimits()
	}
	return &Reader{argv, limits, make(chan struct{}, mostAtOnce)}
}

// request is what a process reads first, as a line of JSON. The texts of the resources follow.
type request struct {
	Limits    Limits
	Program   string
	Resources []source.Resource
	Sizes     []int
}

// answer is a line that a process writes. The last line is whole, and a structure document follows if there is no error.
type answer struct {
	Number  int           `json:",omitempty"` // of a resource with which the work begins or ends
	Begins  bool          `json:",omitempty"`
	Refused *source.Error `json:",omitempty"`
	Whole   bool          `json:",omitempty"`
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
	limited, cancel := context.WithTimeout(ctx, r.limits.Time)
	defer cancel()
	cmd := exec.CommandContext(limited, r.argv[0], r.argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Dir, cmd.Env = "/", []string{"GOTRACEBACK=none"}
	errs := beginning{left: 1000}
	cmd.Stdin, cmd.Stderr = input(request{Limits: r.limits, Program: program}, resources), &errs
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return sir.Program{}, err
	}
	out := &bounded{r: pipe, left: r.limits.Answer}
	p, cause, err := receive(out, resources)
	if err != nil {
		cancel()
	}
	failed := cmd.Wait()
	refuse := func(why string) (sir.Program, error) { return sir.Program{}, &source.Error{In: cause, Msg: why} }
	switch {
	case ctx.Err() != nil:
		return sir.Program{}, ctx.Err()
	case errors.Is(err, errTooLong):
		return refuse(fmt.Sprintf("the document of its structure has more than %d MB: name fewer sources in a request", r.limits.Answer>>20))
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return refuse(fmt.Sprintf("reading it took more than %s, because the machine is busy: send the request again later, or name fewer sources", r.limits.Time))
	case failed != nil && out.ended:
		return refuse(r.why(cmd.ProcessState, firstLine(string(errs.text))))
	}
	return p, err
}

// why says what a process has failed of.
func (r *Reader) why(s *os.ProcessState, said string) string {
	// The kernel kills at the limit. Its accounts differ a little.
	if st, ok := s.Sys().(syscall.WaitStatus); ok && st.Signal() == syscall.SIGKILL && s.UserTime()+s.SystemTime() > r.limits.CPU/2 {
		return fmt.Sprintf("reading it takes more than %s of CPU time, the limit of this gateway (serve --parser-time): split the file, or leave it out", r.limits.CPU)
	}
	return fmt.Sprintf("reading it needs more than %d MB of memory, the limit of this gateway (serve --parser-bytes), or the parser failed (%v: %s): split the file, or leave it out",
		r.limits.Memory>>20, s, said)
}

// receive reads what a process writes. The cause is the resource that the process has worked on for the longest time when
// it wrote no more.
func receive(out io.Reader, resources []source.Resource) (p sir.Program, cause string, err error) {
	var begun []int
	cause = resources[0].In
	for buffered := bufio.NewReader(out); ; {
		line, err := buffered.ReadSlice('\n')
		var a answer
		if err == nil && json.Unmarshal(line, &a) != nil {
			err = fmt.Errorf("the process that reads sources wrote %.50q", line)
		}
		switch {
		case err != nil:
			return p, cause, err
		case a.Refused != nil:
			return p, a.Refused.In, a.Refused
		case a.Whole:
			s, err := sir.Decode(buffered)
			if err != nil || len(s.Programs) != 1 {
				return p, cause, errors.Join(err, errors.New("the process that reads sources wrote no structure"))
			}
			return s.Programs[0], cause, nil
		case a.Begins:
			begun = append(begun, a.Number)
		default:
			begun = slices.DeleteFunc(begun, func(n int) bool { return n == a.Number })
		}
		if len(begun) > 0 && begun[0] < len(resources) {
			cause = resources[begun[0]].In
		}
	}
}

func input(head request, resources []source.Resource) io.Reader {
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

// bounded reads a number of bytes. Reading more is an error.
type bounded struct {
	r     io.Reader
	left  int64
	ended bool // there was nothing more to read
}

var errTooLong = errors.New("too much output")

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.ended = b.ended || err == io.EOF
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// beginning keeps the first bytes of what is written.
type beginning struct {
	text []byte
	left int
}

func (b *beginning) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.text, b.left = append(b.text, kept...), b.left-len(kept)
	return len(p), nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
