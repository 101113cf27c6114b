package grammar

import (
	"bytes"
	"path"
	"regexp"
	"slices"

	"mirador/sir"
	"mirador/sir/source/outline"
)

// Facts are what the files of a program share: macros that begin a loop, and the names of files.
type Facts struct {
	loops []string
	names []string
}

// loopMacro matches the definition of a macro with parameters that begins with a loop.
var loopMacro = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*define[ \t]+(\w{5,100})\([^)\n]*\)[ \t]*(?:\\\n[ \t]*)?(?:for|while)[ \t]*\(`)

const mostMacros = 1000

// Declare adds what a file has for others.
func (x *Facts) Declare(f *outline.File) {
	x.names = append(x.names, path.Base(f.Path))
	if f.Language == "java" {
		return
	}
	for _, m := range loopMacro.FindAllSubmatch(f.Text, mostMacros) {
		if len(x.loops) < mostMacros && !slices.Contains(x.loops, string(m[1])) {
			x.loops = append(x.loops, string(m[1]))
		}
	}
}

// has reports whether the file that an #include names is among the resources.
func (x *Facts) has(name string) bool { return slices.Contains(x.names, path.Base(name)) }

// use is a macro in the text of a file.
type use struct {
	at   int
	name string
}

// macros returns where a file uses macros that begin a loop.
func (x *Facts) macros(f *outline.File) (list []use) {
	if f.Language == "java" {
		return nil
	}
	for _, name := range x.loops {
		for at := 0; ; {
			i := bytes.Index(f.Text[at:], []byte(name))
			if i < 0 {
				break
			}
			i += at
			at = i + len(name)
			if standsAlone(f.Text, i, at) {
				list = append(list, use{i, name})
			}
		}
	}
	return list
}

// standsAlone reports whether a name is used as a statement begins: with a parenthesis behind it, and not in a
// line of the preprocessor.
func standsAlone(text []byte, from, to int) bool {
	line := bytes.TrimLeft(text[bytes.LastIndexByte(text[:from], '\n')+1:from], " \t")
	behind := bytes.TrimLeft(text[to:min(len(text), to+8)], " \t")
	return bytes.HasPrefix(behind, []byte("(")) && (len(line) == 0 || bytes.IndexByte([]byte(" \t;{})"), line[len(line)-1]) >= 0) && !bytes.HasPrefix(line, []byte("#"))
}

// masked returns the text of a file as it is parsed: a macro that begins a loop is read as while.
func (x *Facts) masked(f *outline.File) []byte {
	list := x.macros(f)
	if len(list) == 0 {
		return f.Text
	}
	text := bytes.Clone(f.Text)
	for _, u := range list {
		copy(text[u.at:], "while"+string(bytes.Repeat([]byte(" "), len(u.name)-len("while"))))
	}
	return text
}

// nameMacro sets the form of the loop that a macro begins.
func (w *walker) nameMacro(nodes []*outline.Node, u use) {
	i, found := slices.BinarySearchFunc(nodes, u.at, func(n *outline.Node, at int) int {
		switch {
		case n.End <= at:
			return -1
		case n.Start > at:
			return 1
		}
		return 0
	})
	if !found {
		return
	}
	if n := nodes[i]; n.Start == u.at && n.Kind == sir.Loop {
		n.Form = "macro"
	} else {
		w.nameMacro(n.Nodes, u)
	}
}
