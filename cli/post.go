package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"mirador/mir"
	"mirador/mir/client"
)

func newPost(g *globals) *cobra.Command {
	var app string
	var explain bool
	cmd := &cobra.Command{
		Use:   "post [--app NAME] [--explain] FILE|-",
		Short: "Post a MIR document and print the reply",
		Long: `Posts a MIR document (snapshotreq, sirreq, instrreq, ctrlreq) and prints the
document that answers it: indented on a terminal, unchanged otherwise. If there is only
one application, its name is not needed. The answer includes the gateway's extensions:
where a probe runs, and what it costs. A snapshotreq lists the goroutines of Go programs
only with gateway:goroutines="true". After an errors document the exit status is 1.`,
		Example: `  echo '<snapshotreq named="true" stack="8"/>' | mirador post -
  echo '<snapshotreq stack="6" xmlns:gateway="urn:mirador:gateway" gateway:goroutines="true"/>' | mirador post -
  mirador post --app mmul request.xml
  mirador post --explain request.xml`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			document, err := readInput(cmd.Context(), g.streams.In, args[0])
			if err != nil {
				return err
			}
			return post(cmd, g, app, explain, document)
		},
	}
	cmd.Flags().StringVar(&app, "app", "", "the application, where there are several")
	cmd.Flags().BoolVar(&explain, "explain", false, "say what would be done, and do nothing")
	return cmd
}

func post(cmd *cobra.Command, g *globals, app string, explain bool, document []byte) error {
	prefer := client.Extended
	if explain {
		prefer = client.Explained
	}
	reply, err := answer(g, func(c *client.Client) (*client.Reply, error) { return c.Text(cmd.Context(), app, document, prefer) })
	if err != nil {
		return err
	}
	show := printDocument
	if isTerminal(g.streams.Out) {
		show = printIndented
	}
	if err := show(forPeople(g.streams.Out), reply.Body); err != nil {
		return err
	}
	if reply.Failed() {
		return silentFailure{os.ErrInvalid}
	}
	return nil
}

// printDocument prints a document with exactly one line feed at its end.
func printDocument(w io.Writer, document []byte) error {
	if len(document) == 0 || document[len(document)-1] != '\n' {
		document = append(document, '\n')
	}
	_, err := w.Write(document)
	return err
}

// printIndented prints a document of MIR with one element a line. It prints a document that mir
// cannot write, such as a structure, unchanged.
func printIndented(w io.Writer, document []byte) error {
	decoded, err := mir.Decode(document, mir.ReplyLimits())
	if err != nil {
		return printDocument(w, document)
	}
	var text bytes.Buffer
	if err := (mir.Encoder{Indent: "  "}).Encode(&text, decoded); err != nil {
		return printDocument(w, document)
	}
	return printDocument(w, text.Bytes())
}

// readInput reads a whole file, or standard input. An interrupt ends the wait for a terminal or for
// a pipe without a writer.
func readInput(ctx context.Context, stdin io.Reader, name string) ([]byte, error) {
	type input struct {
		text []byte
		err  error
	}
	read := make(chan input, 1)
	go func() {
		text, err := readAll(stdin, name)
		read <- input{text, err}
	}()
	select {
	case in := <-read:
		return in.text, in.err
	case <-ctx.Done():
		return nil, errors.New("interrupted before the document was read")
	}
}

func readAll(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}
