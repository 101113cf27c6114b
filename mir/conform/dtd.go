package conform

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// dtd is a document type definition with the constructs that MIR uses: elements and
// attributes, without entities and notations. Names are compared as written, with their
// prefixes (XML 1.0 has no namespaces).
type dtd struct {
	elements map[string]element
}

type element struct {
	model      *regexp.Regexp // matches the names of the children, each followed by a blank
	text       bool           // text is allowed
	attributes map[string]attribute
}

type attribute struct {
	values   []string // nil: any value
	required bool
}

var (
	comments     = regexp.MustCompile(`(?s)<!--.*?-->`)
	declarations = regexp.MustCompile(`(?s)<!(ELEMENT|ATTLIST)\s+(\S+)\s+(.*?)>`)
	names        = regexp.MustCompile(`[\w:.-]+`)
	attributes   = regexp.MustCompile(`(?s)(\S+)\s+(CDATA|\([^)]*\))\s+(#REQUIRED|#IMPLIED)`)
)

// parseDTD reads the declarations of a DTD. It refuses unknown declarations instead of
// ignoring them.
func parseDTD(source []byte) (*dtd, error) {
	d := &dtd{elements: make(map[string]element)}
	text := comments.ReplaceAllString(string(source), "")
	var attlists [][]string
	for _, found := range declarations.FindAllStringSubmatch(text, -1) {
		kind, name, what := found[1], found[2], strings.TrimSpace(found[3])
		if kind == "ATTLIST" {
			attlists = append(attlists, []string{name, what})
			continue
		}
		if _, twice := d.elements[name]; twice {
			return nil, fmt.Errorf("the element %s is declared twice", name)
		}
		e := element{attributes: make(map[string]attribute), text: what == "(#PCDATA)"}
		model := what
		if e.text || what == "EMPTY" {
			model = "()"
		}
		pattern := names.ReplaceAllStringFunc(strings.Join(strings.Fields(model), ""), func(child string) string {
			return "(?:" + regexp.QuoteMeta(child) + " )"
		})
		var err error
		if e.model, err = regexp.Compile("^(?:" + strings.ReplaceAll(pattern, ",", "") + ")$"); err != nil {
			return nil, fmt.Errorf("the content of %s: %w", name, err)
		}
		d.elements[name] = e
	}
	for _, list := range attlists {
		if err := d.attributes(list[0], list[1]); err != nil {
			return nil, err
		}
	}
	if rest := strings.TrimSpace(declarations.ReplaceAllString(text, "")); rest != "" {
		return nil, fmt.Errorf("cannot read %q", rest)
	}
	return d, nil
}

func (d *dtd) attributes(of, list string) error {
	e, ok := d.elements[of]
	if !ok {
		return fmt.Errorf("the element %s has attributes and is not declared", of)
	}
	for _, a := range attributes.FindAllStringSubmatch(list, -1) {
		declared := attribute{required: a[3] == "#REQUIRED"}
		if a[2] != "CDATA" {
			declared.values = names.FindAllString(a[2], -1)
		}
		e.attributes[a[1]] = declared
	}
	if rest := strings.TrimSpace(attributes.ReplaceAllString(list, "")); rest != "" {
		return fmt.Errorf("cannot read the attributes of %s: %q", of, rest)
	}
	return nil
}

// open is an open element: its name, and the names of its children so far.
type open struct {
	name     string
	children strings.Builder
}

// validate checks a document and returns the first violation.
func (d *dtd) validate(document []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(document))
	stack := []*open{{}}
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		inner := stack[len(stack)-1]
		switch token := token.(type) {
		case xml.StartElement:
			name := written(token.Name)
			inner.children.WriteString(name + " ")
			if err := d.begins(name, token.Attr); err != nil {
				return err
			}
			stack = append(stack, &open{name: name})
		case xml.EndElement:
			if children := inner.children.String(); !d.elements[inner.name].model.MatchString(children) {
				return fmt.Errorf("<%s> must not contain %q", inner.name, children)
			}
			stack = stack[:len(stack)-1]
		case xml.CharData:
			if len(bytes.TrimSpace(token)) > 0 && !d.elements[inner.name].text {
				return fmt.Errorf("<%s> must not contain the text %q", inner.name, token)
			}
		}
	}
}

func (d *dtd) begins(name string, has []xml.Attr) error {
	e, ok := d.elements[name]
	if !ok {
		return fmt.Errorf("<%s> is not declared", name)
	}
	for _, a := range has {
		declared, ok := e.attributes[written(a.Name)]
		switch {
		case !ok:
			return fmt.Errorf("<%s> has no attribute %s", name, written(a.Name))
		case declared.values != nil && !slices.Contains(declared.values, a.Value):
			return fmt.Errorf("%s of <%s> cannot be %q", written(a.Name), name, a.Value)
		}
	}
	for required, declared := range e.attributes {
		if declared.required && !slices.ContainsFunc(has, func(a xml.Attr) bool { return written(a.Name) == required }) {
			return fmt.Errorf("<%s> lacks %s", name, required)
		}
	}
	return nil
}

// written returns a name as the document has it, from the prefix and the local name into
// which RawToken has split it.
func written(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}
