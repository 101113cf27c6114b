// Package service holds THE table of services: every service of OMIS 2.0 is
// declared once, with its parameters, its result and whether this monitor
// supports it. Checking, dispatch, the services service, access roles and
// doc/omis-services.md all read that table.
//
// It also defines what an extension is (OMIS 6): a package that brings a table of
// its own, implementations for it, and classes of objects.
//
// The engine, the extensions and the gateway import it; it imports the
// vocabulary in package omis. Tables are made by functions and never change
// afterwards, so they may be read from any goroutine.
package service
