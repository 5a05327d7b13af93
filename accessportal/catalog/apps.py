from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "accessportal.catalog"
    label = "catalog"
    verbose_name = "Catalog"
