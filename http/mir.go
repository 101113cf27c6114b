package gateway

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"mirador/mir"
	"mirador/probes"
)

// postOnlyApp answers POST /mir, which needs no name while there is one
// application only.
func (s *Server) postOnlyApp(x *exchange) error {
	return s.postDocument(x, func() (string, error) { return s.onlyApp(x.caller) })
}

func (s *Server) postApp(x *exchange) error {
	return s.postDocument(x, func() (string, error) {
		app, err := s.findApp(x)
		return app.Name, err
	})
}

// postDocument carries out a MIR request. The document is checked before the
// application is looked for: what is wrong with the text has the first word.
func (s *Server) postDocument(x *exchange, find func() (string, error)) error {
	in := takeBuffer()
	defer giveBuffer(in)
	doc, err := s.readDocument(x, in)
	if err != nil {
		return err
	}
	x.place = mir.PositionOf(doc)
	if err := s.admit(x.caller, roleOf(doc)); err != nil {
		return err
	}
	app, err := find()
	if err != nil {
		return err
	}
	if req, ok := doc.(*mir.SIRRequest); ok {
		return s.answerStructure(x, app, req)
	}
	carryOut := s.backend.Do
	if prefers(x.r, "explain") {
		carryOut = s.backend.Explain
		x.Header().Add("Preference-Applied", "explain")
	}
	if prefers(x.r, "return=representation") {
		extend(doc)
		x.Header().Add("Preference-Applied", "return=representation")
	}
	reply, err := carryOut(probes.WithUser(x.r.Context(), x.caller.rights()), app, doc)
	if err != nil {
		return err
	}
	if reply == nil {
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	return sendDocument(x, reply)
}

// extend asks for an answer with the gateway's extensions, as the attribute details="true" of
// a request does.
func extend(doc mir.Document) {
	switch d := doc.(type) {
	case *mir.InstrRequest:
		d.Details = true
	case *mir.ControlRequest:
		d.Details = true
	}
}

func (s *Server) readDocument(x *exchange, buf *bytes.Buffer) (mir.Document, error) {
	body, err := s.readBody(x, buf)
	if err != nil {
		return nil, err
	}
	decoder := s.cfg.Decoder
	if decoder.Charset, err = documentCharset(x.r.Header.Get("Content-Type"), body); err != nil {
		return nil, err
	}
	return decoder.DecodeRequest(body)
}

func sendDocument(x *exchange, doc mir.Document) error {
	out := takeBuffer()
	defer giveBuffer(out)
	if err := mir.Encode(out, doc); err != nil {
		return err
	}
	send(x, http.StatusOK, typeXML, out.Bytes())
	return nil
}

// onlyApp is the application of POST /mir.
func (s *Server) onlyApp(c *Caller) (string, error) {
	var names []string
	for _, app := range s.backend.Apps() {
		if s.mayTouch(c, &app) {
			names = append(names, app.Name)
		}
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", NewFault(http.StatusNotFound,
			"there is no application: start one with \"mirador run -- PROGRAM ARGUMENT…\" or take a running process with \"mirador attach PID\"")
	}
	return "", NewFault(http.StatusConflict, fmt.Sprintf(
		"there are %d applications (%s): post to /apps/NAME/mir, or with \"mirador post --app NAME\"", len(names), strings.Join(names, ", ")))
}

// findApp is the application that the path names. One that the caller may not
// touch is shown to be there: names are no secret, processes are listed by the
// kernel anyhow.
func (s *Server) findApp(x *exchange) (App, error) {
	name := x.param("app")
	apps := s.backend.Apps()
	for _, app := range apps {
		if app.Name != name {
			continue
		}
		if !s.mayTouch(x.caller, &app) {
			return App{}, forbidden(x.caller, &app)
		}
		return app, nil
	}
	return App{}, NewFault(http.StatusNotFound, fmt.Sprintf("there is no application %q; %s", name, nameApps(apps)))
}

func forbidden(c *Caller, app *App) error {
	if c.MayTouch(app.Owner) {
		return NewFault(http.StatusForbidden, fmt.Sprintf(
			"a process of application %s has taken another identity than yours, %s: ask root", app.Name, c.Name))
	}
	return NewFault(http.StatusForbidden, fmt.Sprintf(
		"the processes of application %s belong to uid %d, and you are %s: ask that user or root", app.Name, app.Owner, c.Name))
}

func nameApps(apps []App) string {
	if len(apps) == 0 {
		return "there is none at all: start one with \"mirador run -- PROGRAM ARGUMENT…\""
	}
	names := make([]string, len(apps))
	for i, app := range apps {
		names[i] = app.Name
	}
	return "there are: " + strings.Join(names, ", ")
}
