package main_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var updateRefusals = flag.Bool("update-refusals", false, "write the messages in doc/mir-refusals.md")

const refusalsPage = "doc/mir-refusals.md"

// unclassified is the heading of messages that a person must move to another section.
const unclassified = "## Not classified"

// refusing are the functions that make errors of MIR requests, by the folders of their packages.
var refusing = map[string][]string{
	"mir": {"fail", "failAt", "add", "refuse"}, "mir/translate": {"Errorf"}, "probes": {"failf", "Errorf"}, "http": {"NewFault", "Errorf", "refuse"},
}

// besideMIR are the files whose errors do not answer MIR documents: they are about other routes, about the gateway's start, or
// about replies.
var besideMIR = map[string]bool{
	"mir/decode_reply.go": true, "mir/decompress.go": true, "mir/encode.go": true,
	"probes/launch.go": true, "probes/pause.go": true, "probes/restore.go": true, "probes/start.go": true, "probes/trace.go": true,
	"http/activated.go": true, "http/apps.go": true, "http/listen.go": true, "http/metrics.go": true, "http/omis.go": true, "http/probes.go": true,
	"http/schemas.go": true, "http/server.go": true, "http/structure.go": true, "http/token.go": true, "http/trace.go": true,
}

// TestRefusalsPage checks that doc/mir-refusals.md has every error message of MIR requests, in the section of its reason.
func TestRefusalsPage(t *testing.T) {
	text, err := os.ReadFile(refusalsPage)
	if err != nil {
		t.Fatal(err)
	}
	messages := refusals(t)
	if len(messages) < 100 {
		t.Fatalf("only %d messages are in the code", len(messages))
	}
	want := withRefusals(string(text), messages)
	if *updateRefusals {
		if err := os.WriteFile(refusalsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s does not have the messages of the code: run go test . -run TestRefusalsPage -update-refusals, and move new messages to the section of their reason", refusalsPage)
	}
	if strings.Contains(want, unclassified) {
		t.Errorf("%s has messages under %q", refusalsPage, unclassified)
	}
}

// withRefusals returns the page with the rows of messages that the code has, and those that are new in a section of their own.
func withRefusals(page string, messages map[string]string) string {
	left := maps.Clone(messages)
	var lines []string
	for line := range strings.Lines(page) {
		row, isRow := strings.CutPrefix(line, "| `")
		message, _, hasFile := strings.Cut(row, "` | ")
		if !isRow || !hasFile {
			lines = append(lines, line)
			continue
		}
		if file, known := left[message]; known {
			lines = append(lines, refusalRow(message, file))
			delete(left, message)
		}
	}
	if len(left) > 0 && !strings.Contains(page, unclassified) {
		lines = append(lines, "\n"+unclassified+"\n\n| message | in |\n| --- | --- |\n")
	}
	for _, message := range slices.Sorted(maps.Keys(left)) {
		lines = append(lines, refusalRow(message, left[message]))
	}
	return strings.Join(lines, "")
}

func refusalRow(message, file string) string { return fmt.Sprintf("| `%s` | %s |\n", message, file) }

// refusals returns the messages in the code with their files. Those with no words of their own pass other messages on.
func refusals(t *testing.T) map[string]string {
	found := make(map[string]string)
	for _, dir := range slices.Sorted(maps.Keys(refusing)) {
		names := refusing[dir]
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if besideMIR[file] || strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && slices.Contains(names, called(call)) {
					if message := messageOf(call); len(strings.Fields(message)) > 2 {
						found[strings.ReplaceAll(message, "|", `\|`)] = file
					}
				}
				return true
			})
		}
	}
	return found
}

// called returns the name of the function or method that a call names.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// messageOf returns the first text among the arguments of a call.
func messageOf(call *ast.CallExpr) (message string) {
	for _, arg := range call.Args {
		ast.Inspect(arg, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && message == "" {
				message, _ = strconv.Unquote(text.Value) // the parser has accepted it
			}
			return message == ""
		})
	}
	return message
}
