"""Static files in a bucket."""

from storages.backends.s3 import S3ManifestStaticStorage

_IMPORT = (r"""(?P<matched>(?P<before>\b(?:import|from)\s*)["'](?P<url>\.\.?/[^"']+)["'])""", '%(before)s"%(url)s"')


class StaticBucket(S3ManifestStaticStorage):  # type: ignore[misc]  # django-storages has no types
    """``collectstatic`` writes each file under a name made of what is in it. Our scripts name those that they import so, too;
    Django's own way for it takes words in the comments of other people's scripts for imports."""

    patterns = (*S3ManifestStaticStorage.patterns, *((folder, (_IMPORT,)) for folder in ("portal/*.js", "console/*.js")))
