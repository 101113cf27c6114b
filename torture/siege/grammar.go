//go:build linux && amd64

package main

import (
	"encoding/xml"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"

	"mirador/schemas"
)

// part is an element of a schema (schemas/mir.xsd).
type part struct {
	XMLName    xml.Name
	Name       string `xml:"name,attr"`
	Ref        string `xml:"ref,attr"`
	Type       string `xml:"type,attr"`
	Base       string `xml:"base,attr"`
	Use        string `xml:"use,attr"`
	Value      string `xml:"value,attr"`
	MinOccurs  string `xml:"minOccurs,attr"`
	MaxOccurs  string `xml:"maxOccurs,attr"`
	Components []part `xml:",any"`
}

// grammar generates documents that a schema allows. It does not change, so that any goroutine may
// use it.
type grammar struct {
	roots []*part
	named map[string]*part // elements, types and groups, by kind and name
	words []string         // of values
}

// rootNames are the root elements of requests.
var rootNames = []string{"sirreq", "snapshotreq", "snapshotrequest", "instrreq", "ctrlreq"}

// extensions are attributes of the gateway's namespace with values.
var extensions = []string{
	`g:budget="2%"`, `g:budget="101%"`, `g:label="ci-1"`, `g:label=""`, `g:note="x"`, `g:lease="1s"`, `g:lease="1000000h"`, `g:key="k-1"`,
	`g:details="true"`, `g:sample="10"`, `g:sample="0"`, `g:percentiles="50,99"`, `g:percentiles="101"`, `g:clock="fast"`, `g:times="3"`, `g:unknown="1"`,
}

// destinations are URIs. The gateway must refuse most of them.
var destinations = []string{
	"file://" + folder + "/a", "file://" + folder + "/b?max-size=1k&keep=2", "file://" + folder + "/../x", "file://" + folder, "file:///etc/passwd",
	away, "http://127.0.0.1:2/", "unix:///run/x", "", "%", "http://[::1", "mailto:x",
}

// readGrammar reads the schema of MIR documents.
func readGrammar(words []string) (*grammar, error) {
	text, err := fs.ReadFile(schemas.Files(), "mir.xsd")
	if err != nil {
		return nil, err
	}
	schema := new(part)
	if err := xml.Unmarshal(text, schema); err != nil {
		return nil, err
	}
	g := &grammar{named: make(map[string]*part), words: words}
	for i := range schema.Components {
		p := &schema.Components[i]
		g.named[p.XMLName.Local+" "+p.Name] = p
		if p.XMLName.Local == "element" && slices.Contains(rootNames, p.Name) {
			g.roots = append(g.roots, p)
		}
	}
	if len(g.roots) != len(rootNames) {
		return nil, fmt.Errorf("mir.xsd has %d of the requests %q", len(g.roots), rootNames)
	}
	return g, nil
}

// document returns a request that the schema allows.
func (g *grammar) document(r *rand.Rand) string {
	d := &draft{grammar: g, Rand: r}
	d.element(g.roots[r.IntN(len(g.roots))])
	return strings.Replace(d.text.String(), ">", ` xmlns:g="urn:mirador:gateway">`, 1)
}

// draft is a document that is generated.
type draft struct {
	*grammar
	*rand.Rand
	text  strings.Builder
	depth int
}

func (d *draft) element(p *part) {
	if p.Ref != "" {
		p = d.named["element "+p.Ref]
	}
	content := p.Components
	if p.Type != "" {
		if t := d.named["complexType "+p.Type]; t != nil {
			content = t.Components
		}
	}
	d.text.WriteString("<" + p.Name)
	d.attributes(content)
	d.text.WriteString(">")
	d.depth++
	d.content(content)
	d.depth--
	d.text.WriteString("</" + p.Name + ">")
}

// attributes writes the attributes of an element's type.
func (d *draft) attributes(list []part) {
	for i := range list {
		switch p := &list[i]; p.XMLName.Local {
		case "complexType", "simpleContent", "extension":
			d.attributes(p.Components)
		case "attributeGroup":
			d.attributes(d.named["attributeGroup "+p.Ref].Components)
		case "attribute":
			if p.Use == "required" || d.IntN(2) == 0 {
				fmt.Fprintf(&d.text, ` %s="%s"`, p.Name, escaper.Replace(d.value(p.Type)))
			}
		case "anyAttribute":
			if d.IntN(25) == 0 {
				d.text.WriteString(" " + extensions[d.IntN(len(extensions))])
			}
		}
	}
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;")

// content writes the elements of a type.
func (d *draft) content(list []part) {
	for i := range list {
		switch p := &list[i]; p.XMLName.Local {
		case "complexType":
			d.content(p.Components)
		case "sequence":
			d.repeat(p, func() { d.content(p.Components) })
		case "choice":
			d.repeat(p, func() { d.content(p.Components[d.IntN(len(p.Components)):][:1]) })
		case "group":
			d.repeat(p, func() { d.content(d.named["group "+p.Ref].Components) })
		case "element":
			d.repeat(p, func() { d.element(p) })
		case "any":
			if d.IntN(4) > 0 {
				continue
			}
			d.text.WriteString(`<g:any value="1"/>`)
		}
	}
}

// repeat calls write as often as the part may occur, mostly a few times.
func (d *draft) repeat(p *part, write func()) {
	least, most := 1, 1
	if p.MinOccurs == "0" {
		least = 0
	}
	if p.MaxOccurs == "unbounded" {
		most = 4
	}
	for range least + d.IntN(most-least+1) {
		if d.depth > 6 && least == 0 {
			return
		}
		write()
	}
}

// value returns one of a simple type.
func (d *draft) value(of string) string {
	switch of {
	case "xs:boolean":
		return []string{"true", "false", "1", "0"}[d.IntN(4)]
	case "xs:long", "xs:decimal", "count", "delivery":
		return []string{"0", "1", "10", "1000", "9223372036854775807"}[d.IntN(5)]
	case "xs:anyURI":
		return destinations[d.IntN(len(destinations))]
	case "identifier":
		if d.IntN(2) == 0 {
			return []string{latest, "*", "?", "target:f_1", "COUNT", "WC_TIME"}[d.IntN(6)]
		}
	}
	if t := d.named["simpleType "+of]; t != nil {
		if values := t.Components[0].Components; values[0].XMLName.Local == "enumeration" {
			return values[d.IntN(len(values))].Value
		}
	}
	return d.words[d.IntN(len(d.words))]
}
