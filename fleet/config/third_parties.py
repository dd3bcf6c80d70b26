"""Infrastructure that hosts belong to somebody else by their names: content delivery, firewalls, platforms.

Under a signed scope such a host, or one that is another name of a host out of scope, is asked only where
`[hosts] third_party` says who permitted it. The list is of the common ones.
"""

from __future__ import annotations

from fleet.config.url_list import UrlList

NETWORKS = (
    *("*.cloudfront.net", "*.akamaiedge.net", "*.akamai.net", "*.akamaized.net", "*.edgekey.net"),
    *("*.edgesuite.net", "*.fastly.net", "*.fastlylb.net", "*.cdn.cloudflare.net", "*.azureedge.net"),
    *("*.azurefd.net", "*.b-cdn.net", "*.kxcdn.com", "*.stackpathdns.com", "*.llnwd.net", "*.cdn77.org"),
    *("*.gcdn.co", "*.incapdns.net", "*.impervadns.net", "*.sucuri.net", "*.wafcdn.net"),
)
"""Content delivery and firewalls."""
PLATFORMS = (
    *("*.herokuapp.com", "*.herokudns.com", "*.vercel.app", "*.vercel-dns.com", "*.netlify.app"),
    *("*.netlify.com", "*.github.io", "*.gitlab.io", "*.pages.dev", "*.workers.dev", "*.web.app"),
    *("*.firebaseapp.com", "*.run.app", "*.appspot.com", "*.googleusercontent.com", "*.ghs.googlehosted.com"),
    *("*.amazonaws.com", "*.elasticbeanstalk.com", "*.azurewebsites.net", "*.cloudapp.azure.com"),
    *("*.windows.net", "*.onrender.com", "*.fly.dev", "*.railway.app", "*.digitaloceanspaces.com"),
    *("*.ondigitalocean.app", "*.supabase.co", "*.myshopify.com", "*.squarespace.com", "*.wixdns.net"),
    *("*.wpengine.com", "*.wordpress.com", "*.zendesk.com", "*.freshdesk.com", "*.hubspot.net"),
    *(
        "*.hubspot.com",
        "*.salesforce.com",
        "*.force.com",
        "*.atlassian.net",
        "*.statuspage.io",
        "*.webflow.io",
    ),
    *("*.bubbleapps.io", "*.readthedocs.io", "*.readme.io", "*.intercom.help", "*.ngrok.app"),
)
"""Where programs and pages of many run."""
_KNOWN = {
    "content delivery or a firewall": UrlList.of(NETWORKS, site="", proxy=""),
    "a platform of many": UrlList.of(PLATFORMS, site="", proxy=""),
}


def third_party(host: str) -> str:
    """Whose infrastructure a host is by its name; "" for none that is known."""
    return next((what for what, listed in _KNOWN.items() if listed.match(f"https://{host}/")), "")
