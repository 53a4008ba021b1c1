package script

import "strings"

// host returns the host with its port.
func (u *webURL) host() string {
	if u.Port == "" {
		return u.Host
	}
	return u.Host + ":" + u.Port
}

// origin is that of the same-origin rule; "null" where there is none.
func (u *webURL) origin() string {
	if _, special := specialPorts[u.Scheme]; !special || u.Scheme == "file" {
		return "null"
	}
	return u.Scheme + "://" + u.host()
}

// String puts the parts together.
func (u *webURL) String() string {
	var b strings.Builder
	b.WriteString(u.Scheme + ":")
	if _, special := specialPorts[u.Scheme]; special || u.Host != "" {
		b.WriteString("//")
		if u.Username != "" || u.Password != "" {
			b.WriteString(u.Username)
			if u.Password != "" {
				b.WriteString(":" + u.Password)
			}
			b.WriteByte('@')
		}
		b.WriteString(u.host())
	}
	b.WriteString(u.Path + u.Query + u.Fragment)
	return b.String()
}

// withPart returns the URL with one part replaced, as setting a property of a
// URL object does. What makes no sense changes nothing.
func (u *webURL) withPart(name, value string) *webURL {
	next := *u
	switch name {
	case "protocol":
		scheme := strings.ToLower(strings.TrimSuffix(value, ":"))
		_, was := specialPorts[u.Scheme]
		_, is := specialPorts[scheme]
		if !isScheme(scheme) || was != is {
			return u
		}
		next.Scheme = scheme
		if next.Port == specialPorts[scheme] {
			next.Port = ""
		}
	case "username":
		next.Username = escape(value, userEscapes)
	case "password":
		next.Password = escape(value, userEscapes)
	case "host", "hostname":
		authority := value
		if name == "hostname" && u.Port != "" {
			authority += ":" + u.Port
		}
		other := webURL{Scheme: u.Scheme}
		if u.Opaque || strings.ContainsAny(value, "/?#@") || other.parseAuthority(authority, true) != nil {
			return u
		}
		next.Host, next.Port = other.Host, other.Port
	case "port":
		other := webURL{Scheme: u.Scheme}
		if other.parseAuthority("h:"+value, true) != nil {
			return u
		}
		next.Port = other.Port
	case "pathname":
		if u.Opaque {
			return u
		}
		next.Path = cleanPath("/"+strings.TrimPrefix(value, "/"), true)
	case "search":
		next.Query = ""
		if value = strings.TrimPrefix(value, "?"); value != "" {
			next.Query = next.escapeQuery("?" + strings.ReplaceAll(value, "#", "%23"))
		}
	case "hash":
		next.Fragment = ""
		if value = strings.TrimPrefix(value, "#"); value != "" {
			next.Fragment = escape("#"+value, fragmentEscapes)
		}
	}
	return &next
}
